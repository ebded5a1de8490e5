package jetstream

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Access says where the servers are, and who asks them. Files are PEM but for Credentials.
type Access struct {
	URL         string // nats://HOST:PORT, or tls://; more with commas between them
	Credentials string // a user's .creds file; "" where the servers ask for none
	CA          string // whom to trust as the servers' issuer; "" is the system's list
	Cert        string // shown to the servers; with Key
	Key         string
}

// reconnect is the wait between two tries to reach a server.
const reconnect = 100 * time.Millisecond

// apiWait is how long a question about a stream or a consumer may take: the servers elect a new leader in
// some seconds, and a busy machine takes its time.
const apiWait = 30 * time.Second

func open(nc *nats.Conn) (jetstream.JetStream, error) {
	return jetstream.New(nc, jetstream.WithDefaultTimeout(apiWait))
}

// Addresses are the URL's servers.
func (a Access) Addresses() ([]*url.URL, error) {
	var all []*url.URL
	for text := range strings.SplitSeq(a.URL, ",") {
		text = strings.TrimSpace(text)
		u, err := url.Parse(text)
		if before, after, ok := strings.Cut(text, "@"); ok { // a user alone is a token
			scheme, _, _ := strings.Cut(before, "//")
			return nil, fmt.Errorf("\"%s//…@%s\" must not hold a user, a password or a token: give a credentials file", scheme, after[strings.LastIndexByte(after, '@')+1:])
		}
		if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Host == "" || u.Path != "" {
			return nil, fmt.Errorf("%q must be like nats://127.0.0.1:4222, more with commas", text)
		}
		all = append(all, u)
	}
	return all, nil
}

// Dial connects to one of the servers, and from then on to another whenever that one is lost, for as long
// as it takes.
func Dial(a Access) (*nats.Conn, error) {
	if _, err := a.Addresses(); err != nil {
		return nil, err
	}
	options := []nats.Option{
		nats.Name("spool"), nats.MaxReconnects(-1), nats.ReconnectWait(reconnect),
		// Nothing waits in the client until there is a server again: by then it was asked anew.
		nats.ReconnectBufSize(-1),
	}
	if a.Credentials != "" {
		options = append(options, nats.UserCredentials(a.Credentials))
	}
	if a.CA != "" {
		options = append(options, nats.RootCAs(a.CA))
	}
	if a.Cert != "" {
		options = append(options, nats.ClientCert(a.Cert, a.Key))
	}
	nc, err := nats.Connect(a.URL, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", a.URL, err)
	}
	return nc, nil
}
