/**
 * The argument with which a role's process loads all of its code and ends, before it reads its configuration. Who starts it gives it a folder for
 * compiled code (`NODE_COMPILE_CACHE`), which is full afterwards.
 */
export const COMPILE_ONLY = '--compile-only'
