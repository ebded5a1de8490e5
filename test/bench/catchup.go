package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	doneEvent   = "data: [DONE]\n\n"
	catchUpRead = 256 << 10
)

// catchUp reads a run that has ended from one position after the other, each time to its end: from its
// beginning first, then from anywhere.
func (j job) catchUp(ctx context.Context) (o outcome, err error) {
	var firstBytes histogram
	buf := make([]byte, catchUpRead)
	profiled := j.beginProfile(ctx)
	began := time.Now()
	for from := int64(0); time.Since(began) < j.Measure; from = rand.Int64N(j.Events) {
		n, wait, err := j.readFrom(ctx, from, buf)
		if err != nil {
			return o, fmt.Errorf("from %d: %w", from, err)
		}
		firstBytes.add(wait)
		o.Bytes += n
		o.Checks.Events += j.Events - from
	}
	o.Seconds = time.Since(began).Seconds()
	o.Events = o.Checks.Events
	o.FirstP50, o.FirstP99 = firstBytes.quantile(0.5), firstBytes.quantile(0.99)
	return o, <-profiled
}

// readFrom says how much came, and how long the first byte took. What came is checked by its length and
// its first event: that every byte is the right one is for the tests, and would cost more than reading.
func (j job) readFrom(ctx context.Context, from int64, buf []byte) (n int64, wait time.Duration, err error) {
	url := j.Base + "/runs/" + j.Run + "/resume?from=" + strconv.FormatInt(from, 10)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	have, err := io.ReadAtLeast(resp.Body, buf, eventSize)
	wait = time.Since(began)
	if err != nil {
		return 0, 0, err
	}
	if e, ok := readEvent(buf[:eventSize-len("\n\n")]); !ok || e.number != from {
		return 0, 0, fmt.Errorf("the first event is %q", buf[:eventSize])
	}
	for n = int64(have); err == nil; n += int64(have) {
		have, err = resp.Body.Read(buf)
	}
	if !errors.Is(err, io.EOF) {
		return 0, 0, err
	}
	if want := (j.Events-from)*eventSize + int64(len(doneEvent)); n != want {
		return 0, 0, fmt.Errorf("%d bytes, want %d", n, want)
	}
	return n, wait, nil
}
