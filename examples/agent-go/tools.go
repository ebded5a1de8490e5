package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ledger stands for the world that tools change: a file with a line for each effect. Like a good
// payment service it takes an idempotency key, and does nothing the second time.
type ledger struct{ path string }

// do has the effect under its key, unless it was had before. The answer is the same either way.
func (l ledger) do(key, effect string) (string, error) {
	done, err := os.ReadFile(l.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if bytes.HasPrefix(done, []byte(key+"\t")) || bytes.Contains(done, []byte("\n"+key+"\t")) {
		return "booked", nil
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, "%s\t%s\n", key, effect) // one write: a killed process has made it or not
	return "booked", errors.Join(err, f.Close())
}
