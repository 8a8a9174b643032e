package stats

import (
	"math"
	"sync"
)

// logChoose returns the logarithm of the number of ways to choose k things out of n.
func logChoose(n, k int) float64 {
	return logFactorial(n) - logFactorial(k) - logFactorial(n-k)
}

func logFactorial(n int) float64 {
	if list := logFactorials(); n < len(list) {
		return list[n]
	}
	return lgamma(n)
}

func lgamma(n int) float64 {
	log, _ := math.Lgamma(float64(n) + 1)
	return log
}

// logFactorials holds frequently needed values: all that [TrialsNeeded] can need.
var logFactorials = sync.OnceValue(func() []float64 {
	list := make([]float64, 2*MaxTrialsNeeded+1)
	for n := range list {
		list[n] = lgamma(n)
	}
	return list
})
