package client

import (
	"crypto/sha256"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	maxRepeats    = 256              // calls that are remembered
	repeatsWithin = 10 * time.Minute // after which no SDK tries again
)

// repeats remembers calls that got no good answer under a drawn name, so that the SDK's own retry
// has the same: one call of the SDK is one call for Spool. An SDK says that it retries by its count
// (X-Stainless-Retry-Count: openai-go, anthropic-sdk-go) or by sending the very same request (genai).
//
// The newest one that fits is taken, by one retry alone. So of many calls that are alike, each retry
// finds a name, and what was given up long ago finds no taker.
type repeats struct {
	mu     sync.Mutex
	failed []failedCall // oldest first
}

type failedCall struct {
	digest digest
	header http.Header // the request's own: kept, so that no other map can have its address
	count  int         // of the SDK
	name   name
	at     time.Time
}

// digest tells calls apart: by method, URL, credentials and body.
type digest [sha256.Size]byte

func digestOf(req *http.Request, body []byte) digest {
	h := sha256.New()
	for _, part := range []string{req.Method, req.URL.String()} {
		h.Write([]byte(part + "\x00"))
	}
	for _, c := range credentialHeaders {
		h.Write([]byte(req.Header.Get(c) + "\x00"))
	}
	h.Write(body)
	return digest(h.Sum(nil))
}

// claim returns the name of the call that req repeats, if it does.
func (r *repeats) claim(req *http.Request, d digest) (name, bool) {
	count := retryCount(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.failed) - 1; i >= 0; i-- {
		f := r.failed[i]
		if f.digest != d || time.Since(f.at) > repeatsWithin {
			continue
		}
		if same(f.header, req.Header) || count > 0 && f.count == count-1 {
			r.failed = slices.Delete(r.failed, i, i+1)
			return f.name, true
		}
	}
	return name{}, false
}

// note remembers that req, under the name, got no good answer.
func (r *repeats) note(req *http.Request, d digest, n name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = slices.DeleteFunc(r.failed, func(f failedCall) bool { return time.Since(f.at) > repeatsWithin })
	if len(r.failed) >= maxRepeats {
		r.failed = slices.Delete(r.failed, 0, 1)
	}
	r.failed = append(r.failed, failedCall{d, req.Header, retryCount(req), n, time.Now()})
}

// retryCount is how often the SDK has tried before; what is no count is none.
func retryCount(req *http.Request) int {
	n, err := strconv.Atoi(req.Header.Get("X-Stainless-Retry-Count"))
	if err != nil {
		return 0
	}
	return n
}

// same reports whether a and b are one map.
func same(a, b http.Header) bool {
	return a != nil && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
