package rig

import (
	"bytes"
	"sync"
)

// Ear keeps all that is written to it. It is safe for concurrent use.
type Ear struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (e *Ear) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text.Write(b)
}

// Heard is a copy of what was written by now.
func (e *Ear) Heard() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return bytes.Clone(e.text.Bytes())
}
