package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// job is one stream to be read by one client; js/driver.mjs says what the fields mean.
type job struct {
	ID      string `json:"id"`
	Client  string `json:"client"`
	Base    string `json:"base"`
	Prompt  string `json:"prompt"`
	Model   string `json:"model"`
	Retries int    `json:"retries"`
	Resume  string `json:"resume,omitempty"`
	Durable string `json:"durable,omitempty"`
	Events  string `json:"events,omitempty"`
	Tries   int    `json:"tries,omitempty"`

	language language
}

// result is what the client saw of it. Results are comparable.
type result struct {
	OK         bool    `json:"ok"`
	Events     int     `json:"events"`
	Text       string  `json:"text"`
	Tools      string  `json:"tools"`
	Finish     string  `json:"finish"`
	Reconnects int     `json:"reconnects"`
	Error      failure `json:"error"`
}

// failure is the error that a client raised. Status is 0 where it carried none.
type failure struct {
	Name    string `json:"name"`
	Status  int    `json:"status"`
	Message string `json:"message"`
}

// run does the jobs, those of one language in one process, and returns the results by job id.
func (r *rig) run(t *testing.T, jobs []job) map[string]result {
	t.Helper()
	byLanguage := make(map[language][]job)
	for _, j := range jobs {
		byLanguage[j.language] = append(byLanguage[j.language], j)
	}
	var (
		mu      sync.Mutex
		results = make(map[string]result, len(jobs))
		drivers sync.WaitGroup
	)
	for lang, jobs := range byLanguage {
		drivers.Go(func() {
			got, err := drive(t, r.drivers[lang], jobs)
			if err != nil {
				t.Errorf("driver of %s: %v", lang, err)
			}
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(results, got)
		})
	}
	drivers.Wait()
	for _, j := range jobs {
		if _, ok := results[j.ID]; !ok {
			t.Fatalf("no result of %s", j.ID)
		}
	}
	return results
}

// drive runs one driver over jobs. A line that belongs to none of them is an error: it is a fault
// that the SDK raised where nobody could catch it.
func drive(t *testing.T, command []string, jobs []job) (map[string]result, error) {
	list, err := json.Marshal(jobs)
	if err != nil {
		return nil, err
	}
	var out, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(list), &out, &log
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, log.Bytes())
	}
	keep(t, "driver-"+filepath.Base(command[0])+".jsonl", out.Bytes())

	known := make(map[string]bool, len(jobs))
	for _, j := range jobs {
		known[j.ID] = true
	}
	results := make(map[string]result, len(jobs))
	for line := range strings.Lines(out.String()) {
		var res struct {
			ID string `json:"id"`
			result
		}
		if err := json.Unmarshal([]byte(line), &res); err != nil {
			return nil, fmt.Errorf("result %s: %w", line, err)
		}
		if !known[res.ID] {
			return nil, fmt.Errorf("result of no job: %s", line)
		}
		results[res.ID] = res.result
	}
	return results, nil
}

// keep writes a file beside the other artifacts of a test.
func keep(t *testing.T, name string, content []byte) {
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name), content, 0o644); err != nil {
		t.Error(err)
	}
}
