package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// peer makes requests to the service, over connections that it closes as they should be, or resets.
type peer struct {
	url           string
	clean, abrupt *http.Client
}

func newPeer(url string) *peer {
	client := func(linger int) *http.Client {
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err == nil {
				err = conn.(*net.TCPConn).SetLinger(linger) // 0 makes a reset of each close
			}
			return conn, err
		}
		return &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: workers, DialContext: dial}}
	}
	return &peer{url, client(-1), client(0)}
}

func (p *peer) close() {
	p.clean.CloseIdleConnections()
	p.abrupt.CloseIdleConnections()
}

func (p *peer) ask(ctx context.Context, rng *rand.Rand, method, path, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer soak")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if rng.IntN(2) == 0 {
		return p.abrupt.Do(req)
	}
	return p.clean.Do(req)
}

// habit is how one reader reads.
type habit struct {
	name  string
	hop   int           // bytes after which it leaves and comes back; 0 never
	stall time.Duration // after its first bytes, for so long it reads nothing
	quit  bool          // it leaves for good instead
}

func habits(rng *rand.Rand, size int) habit {
	const hops = 20 // at most
	switch rng.IntN(5) {
	case 0:
		return habit{name: "hopping", hop: 1 + size/hops + rng.IntN(max(size, 1))}
	case 1:
		return habit{name: "stalling", stall: 200*time.Millisecond + upTo(rng, 2*time.Second)}
	case 2:
		return habit{name: "quitting", hop: 1 + rng.IntN(max(size, 1)), quit: true}
	}
	return habit{name: "following"}
}

// reading is what one reader got.
type reading struct {
	habit
	at    int  // the byte after its last one
	clean bool // it was ended, and not cut
	ended bool // one or the other, instead of having left
	hops  int
	bytes int64
	gone  bool // the answer was 410
	err   error
}

// follow reads a run from a position in its own way, and compares each byte.
func (p *peer) follow(ctx context.Context, rng *rand.Rand, id string, want text, from int, h habit) (r reading) {
	r.habit, r.at = h, want.offset(from)
	query := "from=" + strconv.Itoa(from)
	for {
		if r.err = p.segment(ctx, rng, id, query, want.bytes, &r); r.err != nil || r.ended || r.quit || r.gone {
			return r
		}
		r.hops++
		if query = "from_byte=" + strconv.Itoa(r.at); rng.IntN(2) == 0 {
			pos := want.position(r.at)
			query, r.at = "from="+strconv.Itoa(pos), want.offset(pos)
		}
		if r.err = pause(ctx, upTo(rng, 100*time.Millisecond)); r.err != nil {
			return r
		}
	}
}

// segment reads until the answer's end, or until the reader leaves.
func (p *peer) segment(ctx context.Context, rng *rand.Rand, id, query string, want []byte, r *reading) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	resp, err := p.ask(ctx, rng, http.MethodGet, "/runs/"+id+"/resume?"+query, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if r.gone = resp.StatusCode == http.StatusGone; r.gone {
		return nil
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", query, resp.Status)
	}
	stall := r.stall
	buf := make([]byte, 16<<10)
	for left := r.hop; ; {
		room := len(buf)
		if r.hop > 0 {
			room = min(room, left)
		}
		n, err := resp.Body.Read(buf[:room])
		if r.at+n > len(want) || !bytes.Equal(buf[:n], want[r.at:r.at+n]) {
			return fmt.Errorf("%s: the bytes from %d on, %d of them, are not the provider's", query, r.at, n)
		}
		r.at, r.bytes, left = r.at+n, r.bytes+int64(n), left-n
		switch {
		case err != nil:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.ended, r.clean = true, errors.Is(err, io.EOF)
			return nil
		case r.hop > 0 && left == 0:
			return nil
		case stall > 0 && n > 0:
			if err := pause(ctx, stall); err != nil {
				return err
			}
			stall = 0
		}
	}
}

// events reads a run as an EventSource does, and returns the ids' last position, which follow each other
// without a gap, and the name of the last event.
func (p *peer) events(ctx context.Context, rng *rand.Rand, id string, from int) (next int, last string, err error) {
	resp, err := p.ask(ctx, rng, http.MethodGet, "/runs/"+id+"/events?from="+strconv.Itoa(from), "")
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	next = from
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return next, last, nil
		}
		if err != nil {
			return next, last, err
		}
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			last = name
		}
		text, ok := strings.CutPrefix(line, "id: "+id+":")
		if !ok {
			continue
		}
		pos, err := strconv.Atoi(text)
		if err != nil || pos != next {
			return next, last, fmt.Errorf("id %q where %d was due", text, next)
		}
		next++
	}
}

// pause waits, or returns ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
