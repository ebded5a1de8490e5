package main

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// mallocs is the Go runtime's own counter, as Prometheus shows it.
const mallocs = "go_memstats_mallocs_total "

// allocations is how many a program that tells of itself has made so far; 0 where url is empty.
func allocations(url string) (float64, error) {
	if url == "" {
		return 0, nil
	}
	resp, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		if value, ok := strings.CutPrefix(s.Text(), mallocs); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("%s: no %s", url, mallocs)
}

// askingCost is how many allocations the program makes to tell of itself once; to be asked while it
// does nothing else.
func askingCost(url string) (float64, error) {
	before, err := allocations(url)
	if err != nil {
		return 0, err
	}
	after, err := allocations(url)
	return after - before, err
}
