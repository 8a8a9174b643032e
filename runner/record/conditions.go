package record

// Conditions describe what the machine, the waits and the providers did to one attempt at a
// trial. A value that is unknown is absent, such as the counters of a machine that has none. The
// counters of the machine are measured for attempts of at least one second, where the attempt ran:
// on a worker of a fleet, or on the machine of the run. They cover the whole machine, which the
// attempt itself loads, too.
type Conditions struct {
	// CPUWait is the share of the attempt's time, from 0 to 1, in which some program of the machine
	// waited for a processor. MemoryWait is the share in which some program waited for memory. Both
	// are pressure stall information of Linux, "some".
	CPUWait    *float64 `json:"cpuWait,omitempty"`
	MemoryWait *float64 `json:"memoryWait,omitempty"`
	// Load is the load average of one minute per processor, as the mean of the start and the end of
	// the attempt.
	Load *float64 `json:"load,omitempty"`
	// MemoryFree is the share of the machine's memory that was available, from 0 to 1: the lower one
	// of the start and the end of the attempt.
	MemoryFree *float64 `json:"memoryFree,omitempty"`
	// WaitedMS is how long the attempt waited before it started: for an agent, including agents that
	// returned it, for an image, and after an attempt in error. It is in milliseconds, and 0 is absent.
	WaitedMS int64 `json:"waitedMs,omitempty"`
	// Requests count the requests that waza itself sent during the attempt. They are nil without
	// any: requests of an agent that is a program are unknown.
	Requests *Requests `json:"requests,omitempty"`
}

// Requests count requests to models and HTTP APIs, of the agent, its judges and its simulated
// user.
type Requests struct {
	// Sent is the number of requests. Throttled is the number that the server rejected because of a
	// limit or an overload (429, 503 or 529). Retried is the number that were sent again after
	// another fault of the network or the server.
	Sent      int `json:"sent"`
	Throttled int `json:"throttled"`
	Retried   int `json:"retried"`
	// WaitedMS is how long requests waited for their turn and after faults, in milliseconds. Waits
	// of requests at the same time add up.
	WaitedMS int64 `json:"waitedMs"`
}

// First returns the verdict and the conditions of the first attempt at the trial.
func (res *Trial) First() (Verdict, *Conditions) {
	if len(res.Attempts) > 0 {
		return res.Attempts[0].Verdict, res.Attempts[0].Conditions
	}
	return res.Verdict, res.Conditions
}

// Condition names a value of [Conditions] that can go with failures, by its place there.
type Condition string

// The conditions that are tested.
const (
	ConditionCPUWait        Condition = "cpuWait"
	ConditionLoad           Condition = "load"
	ConditionMemoryWait     Condition = "memoryWait"
	ConditionMemoryFree     Condition = "memoryFree"
	ConditionThrottled      Condition = "requests.throttled"
	ConditionRetried        Condition = "requests.retried"
	ConditionRequestsWaited Condition = "requests.waitedMs"
	ConditionWaited         Condition = "waitedMs"
)

// NoiseResult states that trials of a run failed, or ended in error, more often under a condition,
// within tasks. It does not state why: all conditions but [ConditionWaited] can also come from the
// trial itself, because an agent that fails may work longer or send more requests.
type NoiseResult struct {
	Condition Condition `json:"condition"`
	// Verdict is failed, for trials that failed or timed out among those that count, or error, for
	// trials in error among all.
	Verdict Verdict `json:"verdict"`
	// P is the p-value, corrected for all conditions and verdicts that were tested.
	P float64 `json:"p"`
	// Trials is the number of trials that were tested.
	Trials int `json:"trials"`
	// FirstAttempts reports whether some of them had further attempts, which do not count here.
	FirstAttempts bool `json:"firstAttempts,omitempty"`
	// With and Without are the shares of trials that passed or, if the verdict is error, that ended
	// in error, weighted so that both have the same tasks. With is about trials with throttled or
	// retried requests; for other conditions, about those above the median of their task (below, for
	// memoryFree). Both are nil if they do not show what the ranks show.
	With    *float64 `json:"with,omitempty"`
	Without *float64 `json:"without,omitempty"`
}
