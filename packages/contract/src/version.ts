/** Of everything in this repository: roles, SDK and command line are released together. */
export const VERSION = '0.1.0'
