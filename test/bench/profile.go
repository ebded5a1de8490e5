package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// adminConfig opens the admin listener, which has Go's profiles.
const adminConfig = "admin:\n  listen: %s\n"

// profileOf is the file for one measurement's CPU profile, and the address that it comes from; empty
// without --profile. A later round's replaces an earlier one's.
func (r *runner) profileOf(s scenario, t target, program *service) (file, url string) {
	if r.profile == "" {
		return "", ""
	}
	return filepath.Join(r.profile, fmt.Sprintf("%s-%s.pprof", s.name, t)), program.inside() + "/debug/pprof/profile"
}

// adminArgs are for a Spool that can be profiled, with a settings file in dir.
func adminArgs(dir, address string) ([]string, error) {
	file := filepath.Join(dir, "settings.yaml")
	return []string{"--config", file}, os.WriteFile(file, fmt.Appendf(nil, adminConfig, address), 0o600)
}

// beginProfile takes a profile of the window that begins now, in whole seconds; the channel tells of
// its end.
func (j job) beginProfile(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	if j.Profile == "" {
		done <- nil
		return done
	}
	go func() {
		done <- fetch(ctx, fmt.Sprintf("%s?seconds=%.0f", j.Pprof, math.Ceil(j.Measure.Seconds())), j.Profile)
	}()
	return done
}

func fetch(ctx context.Context, url, file string) error {
	ctx, cancel := context.WithTimeout(ctx, maxMeasure+10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile: %s", resp.Status)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	return os.WriteFile(file, b, 0o644)
}
