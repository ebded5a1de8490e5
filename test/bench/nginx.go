package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// nginxConf passes everything on unbuffered, with a worker for each processor, keeping connections to
// the provider as the other proxy does.
const nginxConf = `daemon off;
worker_processes auto;
worker_rlimit_nofile 65536;
pid %[1]s/pid;
error_log %[1]s/errors crit;
events { worker_connections 32768; }
http {
  access_log off;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
  server {
    listen %[2]s backlog=4096;
    location / {
      proxy_pass %[3]s/;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 1h;
    }
  }
}
`

func hasNginx() bool {
	_, err := exec.LookPath("nginx")
	return err == nil
}

func writeNginxConf(dir, address, upstream string) (string, error) {
	path := filepath.Join(dir, "nginx.conf")
	return path, os.WriteFile(path, fmt.Appendf(nil, nginxConf, dir, address, upstream), 0o600)
}
