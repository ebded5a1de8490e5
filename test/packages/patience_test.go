package packages

import (
	"testing"
	"time"
)

// goodbye is what the service takes beyond its grace: readers get 5 seconds for their end, and the log closes.
const goodbye = 10 * time.Second

// fits is whether a supervisor that kills after so many seconds leaves the service its time.
func fits(t *testing.T, grace string, kill int64) bool {
	t.Helper()
	d, err := time.ParseDuration(grace)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(kill)*time.Second >= d+goodbye
}
