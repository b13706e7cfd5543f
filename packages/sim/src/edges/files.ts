/** An agent reads no file by itself: everything goes through `atomic-file.ts`. */
export * from 'node:fs/promises'
