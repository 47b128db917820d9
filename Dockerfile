# One image for servers, parties and analysts. `make containers` builds and runs it; docs/operations.md says more.
ARG BASE=python:3.12-slim
FROM ${BASE} AS build
ENV PIP_RETRIES=10 PIP_DEFAULT_TIMEOUT=60 PIP_DISABLE_PIP_VERSION_CHECK=1
# The compiler stays in this stage. Debian's Python has its headers in a package of their own.
RUN python -c 'import pathlib, sys, sysconfig; sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' \
    || headers=python3-dev; \
    apt-get update && apt-get install --yes --no-install-recommends binutils gcc libc6-dev $headers
RUN python -m venv /opt/fss
# What ours needs, without ours: a layer that changes with the pins only.
COPY pyproject.toml constraints.txt README.md LICENSE /src/
WORKDIR /src
RUN /opt/fss/bin/pip install --no-cache-dir --constraint constraints.txt '.[all,postgres,cluster,s3]'
COPY . /src
RUN /opt/fss/bin/pip install --no-cache-dir --no-deps --force-reinstall . \
    && sh deploy/slim.sh /opt/fss \
    && cd / && FSS_BACKEND=native /opt/fss/bin/python -c "import fss; print(fss.backend())"

FROM ${BASE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="fss-ecdf" \
      org.opencontainers.image.description="Differentially private distribution curves from two servers that do not collude" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="The fss-ecdf maintainers" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/fss /opt/fss
COPY docs/examples /opt/fss/examples
ENV PATH=/opt/fss/bin:$PATH PYTHONDONTWRITEBYTECODE=1
RUN useradd --uid 10001 --no-create-home fss
USER fss
EXPOSE 8440 8441
# For `run`, the default command; `api`, `work` and what is no server have another check or none (`--no-healthcheck`).
HEALTHCHECK --interval=10s --timeout=6s --start-period=20s --retries=5 \
    CMD ["fss-server", "health", "--config", "/etc/fss/server.toml"]
ENTRYPOINT ["fss-server"]
CMD ["run", "--config", "/etc/fss/server.toml"]
