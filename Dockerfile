# Rollcall as an image: one static binary, no shell, a user without rights.
#
#   docker build -t rollcall .
#   docker run --read-only --cap-drop ALL --security-opt no-new-privileges \
#       -p 127.0.0.1:8080:8080 -v rollcall:/data -e ROLLCALL_ADMIN_KEY=rck_… rollcall
#
# The data is in the volume /data. Nothing else is written, so the root can be read-only.
# Give an admin key of at least 32 characters behind rck_; without one, the server makes
# its own and keeps it in /data/admin.key. podman and buildah need --format docker for the
# health check, as images of OCI's format have none. Put TLS in front, or mount a certificate and
# set ROLLCALL_TLS_CERT and ROLLCALL_TLS_KEY.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -tags timetzdata -ldflags="-s -w -X main.stamped=$VERSION" -o /rollcall ./cmd/rollcall \
    && go run ./packaging/release -licences "linux/$(go env GOARCH)" >/LICENCES-OF-OTHERS.txt \
    && mkdir /root-of-image && mkdir -m 700 /root-of-image/data

FROM scratch
ARG VERSION=
LABEL org.opencontainers.image.title=Rollcall org.opencontainers.image.licenses=Apache-2.0 \
    org.opencontainers.image.version=$VERSION
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/LICENSE /src/NOTICE /LICENCES-OF-OTHERS.txt /
COPY --from=build /rollcall /rollcall
# Copied as what is in a directory, /data keeps its mode with each builder.
COPY --from=build --chown=65532:65532 /root-of-image/ /
USER 65532:65532
ENV ROLLCALL_DATA_DIR=/data ROLLCALL_LISTEN=0.0.0.0:8080
VOLUME /data
EXPOSE 8080
# A large store may take a while to open; until then nobody answers.
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --retries=3 CMD ["/rollcall", "health"]
ENTRYPOINT ["/rollcall"]
CMD ["serve"]
