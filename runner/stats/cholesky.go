package stats

import "math"

// A cholesky is the factor L of a symmetric matrix L·Lᵀ with positive eigenvalues (Golub and Van
// Loan 2013, "Matrix Computations", section 4.2). gonum's mat would add 4 MB to the program, and its
// sums differ between processors in the last bits.
type cholesky [][]float64

// factorize returns false if the matrix has no factor, up to rounding. It reads the lower half.
func factorize(m [][]float64) (cholesky, bool) {
	l := square(len(m))
	for i := range m {
		for j := range i + 1 {
			sum := m[i][j]
			for k := range j {
				sum -= float64(l[i][k] * l[j][k])
			}
			switch {
			case i > j:
				l[i][j] = sum / l[j][j]
			case !(sum > math.Abs(m[i][i])*1e-14):
				return nil, false
			default:
				l[i][i] = math.Sqrt(sum)
			}
		}
	}
	return l, true
}

// solve returns x, where the matrix times x is b.
func (l cholesky) solve(b []float64) []float64 {
	n := len(l)
	x := make([]float64, n)
	for i := range n {
		sum := b[i]
		for k := range i {
			sum -= float64(l[i][k] * x[k])
		}
		x[i] = sum / l[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		sum := x[i]
		for k := i + 1; k < n; k++ {
			sum -= float64(l[k][i] * x[k])
		}
		x[i] = sum / l[i][i]
	}
	return x
}

// inverse returns the inverse of the matrix.
func (l cholesky) inverse() [][]float64 {
	inverse := square(len(l))
	for i := range inverse {
		unit := make([]float64, len(l))
		unit[i] = 1
		inverse[i] = l.solve(unit)
	}
	return inverse
}
