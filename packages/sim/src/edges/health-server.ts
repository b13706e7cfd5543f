/** Nobody asks the agent how it is. */
export const startHealthServer = async (): Promise<{ url: string; close(): Promise<void> }> => ({
  url: 'http://health.simulated',
  close: async () => undefined,
})
