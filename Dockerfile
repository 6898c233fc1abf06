# shoal in a container that needs no network, no root and no writable file system but /tmp and the mounted folder:
#
#   docker run --rm --network none --read-only --tmpfs /tmp --user "$(id -u):$(id -g)" -v "$PWD:/data" \
#     shoal anonymize events.parquet release.parquet --k 5 --tz Africa/Dakar
#
# Kernels are compiled here, for any processor of this kind. EXTRAS are those of pyproject.toml, with commas.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
ARG EXTRAS=
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src src
RUN python3 -m venv /opt/shoal \
 && /opt/shoal/bin/python -m pip install --quiet ".${EXTRAS:+[$EXTRAS]}" \
 && rm -rf /build
WORKDIR /tmp
ENV NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=/opt/kernels
RUN mkdir -m 0755 /opt/kernels \
 && /opt/shoal/bin/shoal prepare --all \
 && chmod -R go=rX /opt/kernels

FROM ${BASE}
COPY --from=build /opt/shoal /opt/shoal
COPY --from=build /opt/kernels /opt/kernels
# SHOAL_KERNELS are only read. New ones are kept below HOME, if this user may write there.
ENV PATH=/opt/shoal/bin:$PATH \
    SHOAL_KERNELS=/opt/kernels NUMBA_CPU_NAME=generic \
    HOME=/tmp PYTHONDONTWRITEBYTECODE=1 LANG=C.UTF-8
USER 10001:10001
WORKDIR /data
ENTRYPOINT ["shoal"]
CMD ["--help"]
