package main

import "slices"

// medians calls each function n times, in turns, so that changes of the machine's load affect all of
// them alike. It returns the median of each value of each function.
func medians(n int, measured ...func() ([]float64, error)) ([][]float64, error) {
	all := make([][][]float64, len(measured)) // by function, value and round
	for range n {
		for i, f := range measured {
			values, err := f()
			if err != nil {
				return nil, err
			}
			for j, v := range values {
				if len(all[i]) == j {
					all[i] = append(all[i], nil)
				}
				all[i][j] = append(all[i][j], v)
			}
		}
	}
	result := make([][]float64, len(measured))
	for i := range all {
		for _, values := range all[i] {
			slices.Sort(values)
			result[i] = append(result[i], values[len(values)/2])
		}
	}
	return result, nil
}

// besideFloor calls a measured function and that of its floor n times, in turns. It returns figures
// of the medians. The floor may have fewer values.
func besideFloor(n int, measured, floor func() ([]float64, error)) ([]figure, error) {
	all, err := medians(n, measured, floor)
	if err != nil {
		return nil, err
	}
	list := withoutFloor(all[0]...)
	for i, f := range all[1] {
		list[i].Floor = f
	}
	return list, nil
}
