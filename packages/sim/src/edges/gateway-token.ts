/** Nobody shows it: gateways are not part of the simulation. */
export const loadGatewayToken = async (): Promise<undefined> => undefined
