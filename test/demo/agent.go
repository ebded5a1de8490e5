package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spool-dev/spool/buffer/frame"
)

const (
	credential = "demo"
	question   = `{"model":"demo","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"What is a durable stream?"}]}`
	maxChunk   = 1 << 20
)

// agent asks with its key from the position that it has stored, stores each event before it counts
// it, and prints the words. Killed at any line, it can be started again.
func agent(base, key, state string) error {
	req, err := http.NewRequest(http.MethodPost, base+"/openai/v1/chat/completions", strings.NewReader(question))
	if err != nil {
		return err
	}
	from := position(state)
	req.Header.Set("Authorization", "Bearer "+credential)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("X-Buffer-From", strconv.FormatInt(from, 10))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	log, err := os.OpenFile(state+".bytes", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	events := frame.NewScanner(resp.Body, frame.SSE, maxChunk)
	for {
		event, err := events.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := log.Write(event); err != nil {
			return err
		}
		from++
		if err := os.WriteFile(state, []byte(strconv.FormatInt(from, 10)), 0o600); err != nil {
			return err
		}
		if word := wordIn(event); word != "" {
			fmt.Println(word)
		}
	}
}

// position is where the agent was; 0 at its first start. The agent is killed between words, and the
// bytes that it had stored are counted, so the two files cannot disagree.
func position(state string) int64 {
	f, err := os.Open(state + ".bytes")
	if err != nil {
		return 0
	}
	defer f.Close()
	events, n := frame.NewScanner(f, frame.SSE, maxChunk), int64(0)
	for {
		if _, err := events.Next(); err != nil {
			return n
		}
		n++
	}
}

// wordReader reads the words that an agent prints, a line each.
type wordReader struct {
	lines *bufio.Scanner
	text  string
}

func newWordReader(r io.Reader) *wordReader { return &wordReader{lines: bufio.NewScanner(r)} }

func (w *wordReader) next() bool {
	ok := w.lines.Scan()
	w.text = w.lines.Text()
	return ok
}
