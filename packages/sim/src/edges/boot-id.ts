/** The present boot of the simulated machine. */
import { presentMachine } from '../host/machine.ts'

export const bootId = async (): Promise<string> => presentMachine().bootId
