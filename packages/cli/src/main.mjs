#!/usr/bin/env node
/**
 * Entry of the command line. Everything else is loaded when it is needed, so that short commands stay short.
 *
 * JavaScript, because whoever loads the first TypeScript file also loads what strips its types; behind the compile cache nobody does.
 */
import { enableCompileCache } from 'node:module'

enableCompileCache()
const { main } = await import('./program.ts')
await main()
