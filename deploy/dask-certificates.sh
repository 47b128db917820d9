# dask-certificates.sh FOLDER: an authority for one Dask cluster and two certificates of it, for ten years: `dask` for
# the scheduler and its workers, `driver` for the server's processes. Whoever has one of the keys runs programs on the
# cluster. The authority's own key is thrown away: to exchange certificates, make all of them again.
set -eu
umask 077
mkdir -p "$1"
cd "$1"
make_key() { openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$1"; }
make_key authority-key.pem
openssl req -x509 -new -key authority-key.pem -days 3650 -subj "/CN=Dask of fss-ecdf" -out dask-ca.pem \
    -addext keyUsage=critical,keyCertSign
for role in dask driver; do
    make_key "$role-key.pem"
    openssl req -new -key "$role-key.pem" -subj "/CN=$role" -out "$role.csr"
    openssl x509 -req -in "$role.csr" -CA dask-ca.pem -CAkey authority-key.pem -CAcreateserial -days 3650 \
        -out "$role-cert.pem" 2>/dev/null
    rm "$role.csr"
done
rm authority-key.pem dask-ca.srl
