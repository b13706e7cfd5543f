/** Where the launcher keeps what it has fetched and built. */
export const cachePlace = (): string => process.env['SANDGLASS_CACHE'] ?? '/var/cache/sandglass'
