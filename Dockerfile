# syntax=docker/dockerfile:1
# The compiler runs on the builder's own platform and writes for the target's: no emulation.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION=dev
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /out/spool ./cmd/spool \
 && install -d -m 0700 /out/data

# The certificates of the providers come with distroless/static; there is no shell in it. Nothing but
# /data is written to: the root file system may be read-only.
FROM gcr.io/distroless/static:nonroot
COPY --from=build /out/spool /spool
COPY --from=build --chown=65532:65532 /out/data /data
ENV SPOOL_LISTEN=0.0.0.0:8787 SPOOL_DATA=/data
USER 65532:65532
VOLUME /data
EXPOSE 8787
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/spool", "health"]
ENTRYPOINT ["/spool"]
CMD ["serve"]
