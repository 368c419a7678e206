#!/bin/sh
# Makes a key and a certificate that vouches for itself by the name localhost, for servers that tests start.
#
#     sh xtask/localhost-certificate.sh KEY CERTIFICATE
set -eu

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -config /dev/stdin -keyout "$1" -out "$2" <<'REQUEST'
[req]
distinguished_name = name
x509_extensions = end
[name]
[end]
basicConstraints = critical, CA:FALSE
subjectAltName = DNS:localhost
REQUEST
