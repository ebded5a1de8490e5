package main

import (
	"context"
	"time"
)

// hungPatience is how long a log may answer nobody at shutdown: then it is left as it is, as by kill -9, and the
// next start recovers. Nothing that a reader has seen is lost by that; what was not stored could not be.
const hungPatience = 30 * time.Second

// whenHung calls abort once hung says so, unless ctx ends before.
func whenHung(ctx context.Context, hung func() bool, abort func()) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if hung() {
				abort()
				return
			}
		}
	}
}
