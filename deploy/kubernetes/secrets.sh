# secrets.sh FOLDER [CLUSTER]: the Secrets of one organisation, as YAML for `kubectl apply -f -`, one for each role, so
# that no pod gets more than it needs. FOLDER is what fss-server init made, with certificates, and `database.password`;
# CLUSTER, for overlays/dask, has dask-ca.pem and driver-cert.pem, driver-key.pem, dask-cert.pem, dask-key.pem.
set -eu
server=$1 cluster=${2:-}
secret() {
    echo ---
    kubectl create secret generic "$@" --namespace fss --dry-run=client --output yaml
}
set -- server.toml identity.secret peer.token peer-ca.pem cert.pem key.pem
[ ! -e "$server/database-ca.pem" ] || set -- "$@" database-ca.pem
for name in "$@"; do
    set -- "$@" --from-file="$name=$server/$name"
    shift
done
secret fss-server "$@"
tr -d '\n' <"$server/database.password" | secret fss-database --from-file=password=/dev/stdin
[ -n "$cluster" ] || exit 0
for role in driver dask; do
    name=fss-dask
    [ "$role" = dask ] || name=fss-dask-driver
    secret "$name" --from-file=dask-ca.pem="$cluster/dask-ca.pem" --from-file=dask-cert.pem="$cluster/$role-cert.pem" \
        --from-file=dask-key.pem="$cluster/$role-key.pem"
done
