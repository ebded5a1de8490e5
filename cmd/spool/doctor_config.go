package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// configFindings are the mistakes in the settings: what serve would refuse, and what it would do but
// hardly anybody means.
func configFindings(path string, set settings, err error) []finding {
	if err != nil {
		return append([]finding{found(fail, "config", "%s", oneLine(err))}, secretFindings(path, set)...)
	}
	all := []finding{found(good, "config", "listens on %s, data in %s", set.Listen, set.where())}
	add := func(bad bool, format string, args ...any) {
		if bad {
			all = append(all, found(warn, "config", format, args...))
		}
	}
	open := !isLoopback(set.Listen)
	add(open && len(set.Auth.Keys) == 0, "listen: %s is not loopback and auth.keys is empty: whoever reaches it can call the providers", set.Listen)
	add(open && set.TLS.Cert == "", "listen: %s is not loopback and there is no tls.cert: keys and answers travel in the clear, unless a proxy encrypts them", set.Listen)
	add(set.Admin.Listen != "" && !isLoopback(set.Admin.Listen) && !set.Admin.TLS, "admin.listen: %s is not loopback and admin.tls is off: its key and all answers travel in the clear, unless a proxy encrypts them", set.Admin.Listen)
	add(slices.Contains(set.CORS.Origins, "*"), "cors.origins: * lets the pages of any site read answers")
	add(set.Sync == "normal", "sync: normal: a power cut may take events that readers have seen")
	add(set.Limits.MaxTTL > 0 && set.Limits.MaxTTL < set.TTL, "limits.max_ttl: %s is below ttl, %s, which stands", set.Limits.MaxTTL, set.TTL)
	for _, name := range slices.Sorted(maps.Keys(set.Providers)) {
		for _, f := range set.Providers[name].Fallbacks {
			add(set.Providers[f.Provider].Key == "", "providers.%s.fallbacks: %s has no key of its own, so it is never taken", name, f.Provider)
		}
	}
	all = append(all, secretFindings(path, set)...)
	return append(all, certFindings(set.TLS)...)
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// certSoon is how long before its end a certificate is worth a word.
const certSoon = 14 * 24 * time.Hour

func certFindings(t tlsSettings) []finding {
	if t.Cert == "" {
		return nil
	}
	c, err := readCertificate(t.Cert, t.Key, zap.NewNop())
	if err != nil {
		return []finding{found(fail, "tls", "%v", err)}
	}
	until := c.pair.Load().Leaf.NotAfter
	left := time.Until(until)
	l := good
	switch {
	case left <= 0:
		l = fail
	case left < certSoon:
		l = warn
	}
	return []finding{found(l, "tls", "%s is good until %s", t.Cert, until.Format(time.RFC3339))}
}

const (
	reachTimeout = 10 * time.Second
	maxSkew      = 30 * time.Second // beyond it signatures of requests are refused, by some providers
)

// providerFindings asks each provider's base URL. Any answer will do: it is the way there that is
// looked at.
func providerFindings(ctx context.Context, set settings) []finding {
	routes, err := set.routes()
	if err != nil {
		return []finding{found(fail, "providers", "%v", err)}
	}
	names := slices.Sorted(maps.Keys(routes))
	all := make([]finding, len(names))
	var work sync.WaitGroup
	for i, name := range names {
		work.Go(func() { all[i] = reach(ctx, name, routes[name].BaseURL.String()) })
	}
	work.Wait()
	return all
}

func reach(ctx context.Context, name, base string) finding {
	check := "provider " + name
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base, http.NoBody)
	if err != nil {
		return found(fail, check, "%v", err)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	begun := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return found(warn, check, "cannot be reached: %v", err) // a built-in one may not be used at all
	}
	defer resp.Body.Close()
	took := time.Since(begun)
	if there, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		if skew := begun.Sub(there).Abs(); skew > maxSkew {
			return found(warn, check, "answers, but its clock and this one are %s apart", skew.Round(time.Second))
		}
	}
	return found(good, check, "%s answers in %s", base, fmt.Sprint(took.Round(time.Millisecond)))
}
