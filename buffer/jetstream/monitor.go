package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// monitorPatience is for one server's answer.
	monitorPatience = 5 * time.Second
	// maxVarz bounds it, in bytes.
	maxVarz = 1 << 20
)

// Server is what one server says that it is set to, at its monitoring port. A client cannot see it
// otherwise.
type Server struct {
	Name     string
	Version  string
	Stores   bool          // JetStream is on
	Always   bool          // it flushes before it acknowledges: sync_interval: always
	Interval time.Duration // else how often it flushes
	Free     int64         // bytes of its limit that are not taken
}

// Look asks the server whose monitoring port is at base, like http://127.0.0.1:8222.
func Look(ctx context.Context, base string) (Server, error) {
	ctx, cancel := context.WithTimeout(ctx, monitorPatience)
	defer cancel()
	address := strings.TrimSuffix(base, "/") + "/varz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return Server{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Server{}, err
	}
	defer resp.Body.Close() // it was only read from
	if resp.StatusCode != http.StatusOK {
		return Server{}, fmt.Errorf("%s answers with %s", address, resp.Status)
	}
	var v struct {
		Name      string `json:"server_name"`
		Version   string `json:"version"`
		JetStream struct {
			Config *struct {
				Always   bool          `json:"sync_always"`
				Interval time.Duration `json:"sync_interval"`
				Max      int64         `json:"max_storage"`
			} `json:"config"`
			Stats struct {
				Used int64 `json:"storage"`
			} `json:"stats"`
		} `json:"jetstream"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxVarz)).Decode(&v); err != nil || v.Version == "" {
		return Server{}, errors.Join(fmt.Errorf("%s is no NATS server's", address), err)
	}
	s := Server{Name: v.Name, Version: v.Version}
	if c := v.JetStream.Config; c != nil {
		s.Stores, s.Always, s.Interval, s.Free = true, c.Always, c.Interval, c.Max-v.JetStream.Stats.Used
	}
	return s, nil
}

// Flushing asks all of the servers, and says why what they acknowledge could be lost with their power:
// ErrLazy of a server that is set so, another error of one that does not tell.
func Flushing(ctx context.Context, monitors []string) error {
	var all []error
	for _, base := range monitors {
		s, err := Look(ctx, base)
		switch {
		case err != nil:
			all = append(all, fmt.Errorf("see whether the server flushes: %w", err))
		case !s.Stores:
			all = append(all, fmt.Errorf("server %s: JetStream is off", s.Name))
		case !s.Always:
			all = append(all, fmt.Errorf("server %s: %w, but each %s", s.Name, ErrLazy, s.Interval))
		}
	}
	return errors.Join(all...)
}
