package decide

// The sizes of bets, as multiples of the size that is best if the gain differs from the claim by
// BetterBy, and the share of each in the first wealth. Large bets soon show large gains, small ones
// end runs whose gain lies between the two claims.
var (
	factors = [bets]float64{0.25, 0.5, 1, 2, 4}
	shares  = [bets]float64{0.02, 0.05, 0.7, 0.15, 0.08}
)

const (
	bets = 5
	// greatestBet keeps every factor of a wealth at 1 - greatestBet or more.
	greatestBet = 0.9
	// mainShare is the share of the risk of each verdict. The rest is for the other end of the
	// interval, see [Evidence.Estimate].
	mainShare = 0.95
)

// An observation is a pair as bets see it.
type observation struct {
	// low and high are z if a missing pair is the worst and the best one of B; otherwise both are z.
	low, high float64
	// least and most are the limits of z, which were known before the pair.
	least, most float64
	// size is the size of a bet with factor 1.
	size float64
}

// wealth is the wealth of each size of bet.
type wealth [bets]float64

func start() wealth { return wealth(shares) }

// bet bets that the mean of z is greater than the claim. No z is less than least. The bet is as
// large as one against the greater claim sized may be, so that a wealth falls as the claim grows.
func (w *wealth) bet(size, claim, sized, z, least float64) {
	most := greatestBet / max(sized-least, tiny)
	gain := z - claim
	for i, f := range factors {
		w[i] *= 1 + float64(min(f*size, most)*gain)
	}
}

// total returns the whole wealth.
func (w *wealth) total() float64 { return w[0] + w[1] + w[2] + w[3] + w[4] }

// tiny prevents divisions by 0.
const tiny = 1e-12
