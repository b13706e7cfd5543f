/** A simulated machine starts no second agent while one runs. */
export const lockInstance = async (): Promise<AsyncDisposable> => ({ [Symbol.asyncDispose]: async () => undefined })
