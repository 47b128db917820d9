# One part of the Dask cluster, over TLS with certificates on both sides. Whoever reaches it runs programs on it.
set -eu
tls="--tls-ca-file /etc/fss/dask-ca.pem --tls-cert /etc/fss/dask-cert.pem --tls-key /etc/fss/dask-key.pem"
if [ "$1" = scheduler ]; then
    exec python -m distributed.cli.dask_scheduler --protocol tls --port 8786 --no-dashboard $tls
fi
exec python -m distributed.cli.dask_worker tls://scheduler:8786 --nthreads 1 --no-nanny --no-dashboard \
    --death-timeout 20 --local-directory /tmp $tls
