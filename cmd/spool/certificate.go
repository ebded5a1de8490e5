package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// certificateLook is how long a handshake may be answered with what the files held the last time.
const certificateLook = time.Second

// certificate is what two PEM files hold, read again once they have changed: whoever renews them need
// tell nobody. While they do not fit together, as between the writing of one and of the other, the pair
// before them is served.
type certificate struct {
	cert, key string
	log       *zap.Logger

	pair atomic.Pointer[keyPair]
	due  atomic.Int64 // when to look at the files again, Unix nanoseconds; who moves it on does it
}

// keyPair is a pair and the files that were looked at last, which need not be those it came from.
type keyPair struct {
	*tls.Certificate
	cert, key os.FileInfo
}

// readCertificate reads the files for the first time.
func readCertificate(cert, key string, log *zap.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, log: log}
	p, err := c.stat()
	if err != nil {
		return nil, err
	}
	if p.Certificate, err = c.load(); err != nil {
		return nil, err
	}
	c.pair.Store(p)
	c.due.Store(time.Now().Add(certificateLook).UnixNano())
	return c, nil
}

// at is the certificate to serve at the time now. No handshake waits for another's look at the files.
func (c *certificate) at(now time.Time) *tls.Certificate {
	if due := c.due.Load(); now.UnixNano() >= due && c.due.CompareAndSwap(due, now.Add(certificateLook).UnixNano()) {
		c.look()
	}
	return c.pair.Load().Certificate
}

// look reads the files again if they are others than before. A pair that cannot be read is logged once.
func (c *certificate) look() {
	old := c.pair.Load()
	p, err := c.stat()
	if err != nil { // in the middle of a change, or for good: the next look tells
		return
	}
	if same(old.cert, p.cert) && same(old.key, p.key) {
		return
	}
	if p.Certificate, err = c.load(); err != nil {
		c.log.Warn("certificate not read", zap.Error(err))
		p.Certificate = old.Certificate
	} else {
		c.log.Info("certificate read", zap.Time("expires", p.Leaf.NotAfter))
	}
	c.pair.Store(p)
}

// stat looks at the files before they are read, so that a change during the reading is seen later.
func (c *certificate) stat() (*keyPair, error) {
	cert, err := os.Stat(c.cert)
	if err != nil {
		return nil, fmt.Errorf("tls.cert: %w", err)
	}
	key, err := os.Stat(c.key)
	if err != nil {
		return nil, fmt.Errorf("tls.key: %w", err)
	}
	return &keyPair{cert: cert, key: key}, nil
}

func (c *certificate) load() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("tls.cert with tls.key: %w", err)
	}
	return &pair, nil
}

// same reports whether a path still leads to the same content: renewals write in place, put another
// file there, or turn a link.
func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
