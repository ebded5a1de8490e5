package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// state is all that the agent has to remember: what was said, and which call comes next.
type state struct {
	Operation string    `json:"operation"` // names the user's action in every key
	Step      int       `json:"step"`      // the call that comes next, from 1
	Part      int       `json:"part"`      // of that call, from 1: more than one where a run was interrupted
	Done      bool      `json:"done"`
	Messages  []message `json:"messages"`

	path string
}

// key names the next call at Spool. It is the same after a restart.
func (s *state) key() string {
	if s.Part > 1 {
		return fmt.Sprintf("%s:%d:%d", s.Operation, s.Step, s.Part)
	}
	return fmt.Sprintf("%s:%d", s.Operation, s.Step)
}

// load reads the state, or begins a new one and saves it before anything is bought.
func load(path, prompt string) (*state, error) {
	s := &state{path: path}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.Operation, s.Step, s.Part = rand.Text(), 1, 1
		s.Messages = []message{{Role: "user", Content: prompt}}
		return s, s.save()
	}
	if err != nil {
		return nil, err
	}
	return s, json.Unmarshal(b, s)
}

// save replaces the file as a whole: a crash leaves the old state or the new one.
func (s *state) save() error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(s.path+".new", s.path)
}
