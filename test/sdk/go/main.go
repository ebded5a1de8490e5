// Command go reads streams with unmodified Go SDKs. A list of jobs comes on
// standard input, as a JSON array, and one result a line goes to standard
// output, in the order in which jobs end; what a job and a result hold says
// ../js/driver.mjs, which does the same for JavaScript.
// By hand: go run . CLIENT BASE [PROMPT]
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	spool "github.com/spool-dev/spool/api/client"
)

const (
	width    = 8           // jobs at a time
	patience = time.Minute // a job that takes longer hangs
)

type job struct {
	ID      string `json:"id"`
	Client  string `json:"client"`
	Base    string `json:"base"`
	Prompt  string `json:"prompt"`
	Model   string `json:"model"`
	Retries int    `json:"retries"`
	Spool   string `json:"spool"`   // where the client is to go through Spool's transport, its base URL
	Key     string `json:"key"`     // the call's, there
	Backoff int    `json:"backoff"` // there too: ms between two tries; 0 is the default
}

type result struct {
	ID string `json:"id"`
	OK bool   `json:"ok"`
	reading
	Error *failure `json:"error,omitempty"`
}

type failure struct {
	Name    string `json:"name"`
	Status  int    `json:"status"`
	Message string `json:"message"`
}

func main() {
	jobs, err := jobsOf(os.Args[1:], os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	results := make(chan result)
	go perform(jobs, results)
	out := json.NewEncoder(os.Stdout)
	for r := range results {
		if err := out.Encode(r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func jobsOf(args []string, in io.Reader) (jobs []job, err error) {
	switch len(args) {
	case 0:
		err = json.NewDecoder(in).Decode(&jobs)
		return jobs, err
	case 2, 3:
		prompt := strings.Join(args[2:], "")
		return []job{{ID: args[0], Client: args[0], Base: args[1], Prompt: prompt}}, nil
	default:
		return nil, errors.New("usage: go run . [CLIENT BASE [PROMPT]]")
	}
}

// perform runs the jobs, some at a time, and closes results after the last.
func perform(jobs []job, results chan<- result) {
	waiting := make(chan job)
	var workers sync.WaitGroup
	for range width {
		workers.Go(func() {
			for j := range waiting {
				results <- run(j)
			}
		})
	}
	for _, j := range jobs {
		waiting <- j
	}
	close(waiting)
	workers.Wait()
	close(results)
}

func run(j job) result {
	read, ok := clients[j.Client]
	if !ok {
		return result{ID: j.ID, Error: &failure{Name: "unknown client", Message: j.Client}}
	}
	j.Prompt = cmp.Or(j.Prompt, "hello")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r := result{ID: j.ID}
	over := &http.Client{}
	if j.Spool != "" {
		over.Transport = &spool.Transport{BaseURL: j.Spool, Patience: spool.Patience{Backoff: time.Duration(j.Backoff) * time.Millisecond}}
		ctx = spool.WithKey(ctx, j.Key)
	}
	if err := read(ctx, j, over, &r.reading); err != nil {
		name, status := describe(err)
		r.Error = &failure{Name: name, Status: status, Message: err.Error()}
	}
	r.OK = r.Error == nil
	return r
}
