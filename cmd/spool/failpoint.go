//go:build !failpoints

package main

import (
	"github.com/spool-dev/spool/buffer/provider"
	"github.com/spool-dev/spool/buffer/sqlite"
)

// failpoints are places where the process kills itself for a test. What is shipped has none.
type failpoints struct{}

func newFailpoints() (failpoints, error) { return failpoints{}, nil }

// log is the log's seam; nil is none.
func (failpoints) log() func(sqlite.Point) error { return nil }

// over is the client, with nothing on the way to the provider.
func (failpoints) over(c *provider.Client) *provider.Client { return c }
