/** An older Node.js fails somewhere later, with a message about something else. Imported first. */

const OLDEST = 24

const version = typeof process === 'undefined' ? undefined : process.versions?.node
if (version !== undefined && Number(version.split('.')[0]) < OLDEST) {
  throw new Error(`@sandglass/sdk needs Node.js ${OLDEST} or newer; this is ${version}.`)
}
