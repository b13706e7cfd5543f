/** What a thread that runs seeds needs once: hooks, globals, the engine. */
import { installGlobals } from '../kernel/globals.ts'
import { Engine } from '../store/engine.ts'
import { installHooks, moduleUrl } from './hooks.ts'

type Simulation = typeof import('../simulation.ts')

export async function prepareThread(): Promise<Engine> {
  installHooks()
  const engine = await Engine.open()
  installGlobals()
  return engine
}

/** @param defect as `registerDefect` numbered it; 0: none */
export async function loadSimulation(defect: number): Promise<Simulation> {
  return await import(moduleUrl('simulation.ts', defect))
}
