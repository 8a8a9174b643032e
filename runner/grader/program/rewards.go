package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"waza/eval/text"
	"waza/runner/grader"
	"waza/runner/record"
)

// RewardDetails are the details of a reward: what the verifier wrote.
type RewardDetails struct {
	// Rewards by name. That of a reward.txt has the name reward.
	Rewards map[string]float64 `json:"rewards"`
	// Artifacts are what a separate verifier got from the agent.
	Artifacts []CopiedArtifact `json:"artifacts,omitempty"`
}

// rewardName is the name of the reward that counts.
const rewardName = "reward"

// combineMean is the value of combine for means of rewards.
const combineMean = "mean"

// rewardOf returns the reward that counts: the one named reward, else the least.
func rewardOf(rewards map[string]float64) float64 {
	if r, ok := rewards[rewardName]; ok {
		return r
	}
	return slices.Min(slices.Collect(maps.Values(rewards)))
}

// score returns the score of rewards. said are the last words of the verifier.
func (o *RewardOptions) score(rewards map[string]float64, said string) grader.Score {
	reward := rewardOf(rewards)
	score := grader.Score{Score: min(max(reward, 0), 1), Details: RewardDetails{Rewards: rewards}}
	switch lack := o.lack(rewards); {
	case lack != "":
		score.Feedback = lack
		if said != "" {
			score.Feedback += ": " + said
		}
		return score
	case reward > 1 || reward < 1:
		score.Feedback = fmt.Sprintf("the reward is %v", reward)
	}
	score.Passed = true
	return score
}

// lack returns the reason why rewards do not pass; empty if they pass.
func (o *RewardOptions) lack(rewards map[string]float64) string {
	if o.PassRewards == nil {
		if reward := rewardOf(rewards); !(reward >= o.PassReward) {
			return fmt.Sprintf("the reward is %v, and %v passes", reward, o.PassReward)
		}
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(o.PassRewards)) {
		least, shown := o.PassRewards[name], text.Clip(name, 80)
		switch reward, given := rewards[name]; {
		case !given:
			return fmt.Sprintf("the verifier gave no reward %q, and %v passes", shown, least)
		case !(reward >= least):
			return fmt.Sprintf("the reward %q is %v, and %v passes", shown, reward, least)
		}
	}
	return ""
}

// combine returns the score of the rewards that checkpoints gave.
func (o *RewardOptions) combine(reached []record.Grade) (grader.Score, error) {
	var all []map[string]float64
	for i := range reached {
		if r := &reached[i]; r.Type == Reward.Name && r.Error != "" {
			return grader.Score{}, fmt.Errorf("%s: %s", r.Name, r.Error)
		}
		if rewards := rewardsOf(&reached[i]); len(rewards) > 0 {
			all = append(all, rewards)
		}
	}
	if len(all) == 0 {
		return grader.Score{}, errors.New("no checkpoint gave a reward")
	}
	if o.Combine == combineMean {
		return o.score(meanRewards(all), ""), nil
	}
	return o.score(all[len(all)-1], ""), nil
}

// rewardsOf returns the rewards of a result, which can come from a record; nil if it has none.
func rewardsOf(r *record.Grade) map[string]float64 {
	if r.Type != Reward.Name || !r.Scored() {
		return nil
	}
	data, err := json.Marshal(r.Details)
	if err != nil {
		return nil
	}
	var details RewardDetails
	if json.Unmarshal(data, &details) != nil {
		return nil
	}
	return details.Rewards
}

// meanRewards returns the mean of each reward. Where one is missing, it counts as 0, as in Harbor.
func meanRewards(all []map[string]float64) map[string]float64 {
	means := map[string]float64{}
	for _, rewards := range all {
		for name, reward := range rewards {
			means[name] += reward
		}
	}
	for name := range means {
		means[name] /= float64(len(all))
	}
	return means
}
