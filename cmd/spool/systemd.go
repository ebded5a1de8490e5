package main

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"
)

// The names by which a socket unit says which listener a socket is (FileDescriptorName=). A socket of
// any other name is the service's own.
const (
	serviceSocket = "spool"
	adminSocket   = "admin"
)

// sockets are the listeners that others have opened for this process: the supervisor (sd_listen_fds(3)), or the
// process before this one. They outlive it: callers that come while it is down wait in the system's backlog. The
// zero value has none.
type sockets struct {
	service, admin net.Listener

	waits *os.File // where the process before this one waits for it; nil where there is none
}

// inherited takes what the process before this one hands over, or else LISTEN_FDS: at most one socket for
// each listener; none without them.
func inherited() (sockets, error) {
	var s sockets
	if list, ok := os.LookupEnv(handoverVar); ok {
		return handedOver(list)
	}
	named, err := activation.ListenersWithNames()
	if err != nil {
		return s, fmt.Errorf("LISTEN_FDS: %w", err)
	}
	for name, all := range named {
		place := &s.service
		if name == adminSocket {
			place = &s.admin
		}
		for _, l := range all {
			if *place != nil {
				return s, errors.Join(fmt.Errorf("LISTEN_FDS: %d sockets named %q: want at most one %s and one %s", len(all), name, serviceSocket, adminSocket), s.close())
			}
			*place = l
		}
	}
	return s, nil
}

// close closes this process's ends; the supervisor keeps its own.
func (s sockets) close() error {
	var err error
	for _, l := range []net.Listener{s.service, s.admin} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

// What the supervisor is told (sd_notify(3)).
const (
	ready    = daemon.SdNotifyReady
	stopping = daemon.SdNotifyStopping
)

// notify tells the supervisor, where there is one that listens. It can do without: a failure is a line
// in the log, and its own patience decides.
func notify(state string, log *zap.Logger) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("supervisor not notified", zap.String("socket", os.Getenv("NOTIFY_SOCKET")), zap.Error(err))
	}
}
