# The image of railmated, railmatectl, railmate-cni and railmate-probe: the programs, the shared libraries they need, nothing else.
# hack/image makes the same image without a container engine; hack/image-root is the common part. The image is of Debian 12's packages,
# whatever the release of the machine that runs this.
FROM debian:bookworm AS build
COPY . /src
WORKDIR /src
RUN hack/install-deps image && hack/image-root /image

FROM scratch
COPY --from=build /image /
ENTRYPOINT ["/usr/bin/railmated"]
