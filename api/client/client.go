package client

import (
	"context"
	"errors"
	"net/http"

	"github.com/spool-dev/spool/api/wire"
)

// Client asks one Spool about its caller's runs. It is safe for concurrent use. Its errors are *Error
// where Spool has refused, and else those of the connection.
type Client struct {
	BaseURL    string       // of Spool: http://127.0.0.1:8787
	Credential string       // a buffer key where Spool has some, else the key that goes to the provider; empty for none
	HTTP       *http.Client // default http.DefaultClient
	Patience   Patience     // of Resume
}

// Status returns the run.
func (c *Client) Status(ctx context.Context, id string) (wire.Run, error) {
	return c.act(ctx, http.MethodGet, id)
}

// Cancel stops the run's call to its provider and returns the run. What is stored stays readable. A
// run that has ended stays as it ended.
func (c *Client) Cancel(ctx context.Context, id string) (wire.Run, error) {
	return c.act(ctx, http.MethodPost, id, "cancel")
}

// Ack releases the run's chunks, which nobody can read again, and returns the run. A live run is
// refused with code still_running.
func (c *Client) Ack(ctx context.Context, id string) (wire.Run, error) {
	return c.act(ctx, http.MethodPost, id, "ack")
}

func (c *Client) act(ctx context.Context, method, id string, action ...string) (wire.Run, error) {
	l, err := c.link()
	if err != nil {
		return wire.Run{}, err
	}
	return l.run(ctx, method, id, action...)
}

// Resume reads a run from the position from on, what is stored and then live, to its end, over as
// many connections as Patience allows. The stream must be closed; ctx ends it too.
//
// A run that ended short of its provider's own end ends the stream with an *InterruptedError, never
// with io.EOF. Where it cannot be repaired the error is a *GiveUpError.
func (c *Client) Resume(ctx context.Context, id string, from int64) (*Stream, error) {
	l, err := c.link()
	if err != nil {
		return nil, err
	}
	if err := named(id); err != nil {
		return nil, err
	}
	s := newStream(ctx, l, c.Patience)
	s.Run, s.From = id, from
	first := func() error {
		resp, err := s.link.resume(s.ctx, id, s.place())
		if err == nil {
			s.begin(resp)
		}
		return err
	}
	if err := s.trouble.insist(s.ctx, first(), first); err != nil {
		defer s.Close()
		if e, ok := errors.AsType[*Error](err); ok && !mayPass(e) {
			return nil, e
		}
		return nil, s.stopped(err)
	}
	return s, nil
}

func (c *Client) link() (link, error) {
	base, err := parseBase(c.BaseURL)
	if err != nil {
		return link{}, err
	}
	l := link{base: base, header: http.Header{}, do: http.DefaultClient.Do}
	if c.HTTP != nil {
		l.do = c.HTTP.Do
	}
	if c.Credential != "" {
		l.header.Set("Authorization", "Bearer "+c.Credential)
	}
	return l, nil
}
