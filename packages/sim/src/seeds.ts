/** Runs seeds in threads, each with a database engine of its own, until all are done or one of them violates an invariant. */
import { Worker } from 'node:worker_threads'
import type { Finding, Search } from './defects/search.ts'
import type { SeedResult } from './simulation.ts'

/** What a thread has loaded, and its database's memory, only grow: another one goes on after so many. */
const JOBS_OF_A_WORKER = 40

export type SeedsOptions = {
  readonly seeds: readonly number[]
  readonly workers: number
  readonly historyLines: number
  readonly onSeed?: (result: SeedResult) => void
}

export type Job = { readonly kind: 'seed'; readonly seed: number; readonly historyLines: number } | { readonly kind: 'search'; readonly search: Search }

export type JobResult = { readonly kind: 'seed'; readonly result: SeedResult } | { readonly kind: 'search'; readonly finding: Finding }

/** @returns the lowest seed that violates, of those that were run */
export async function runSeeds({ seeds, workers, historyLines, onSeed }: SeedsOptions): Promise<{ readonly violated: SeedResult | undefined }> {
  let violated: SeedResult | undefined
  await runJobs(
    seeds.map((seed) => ({ kind: 'seed', seed, historyLines })),
    workers,
    (told) => {
      if (told.kind !== 'seed') return true
      onSeed?.(told.result)
      if (told.result.violation !== undefined && (violated === undefined || told.result.seed < violated.seed)) violated = told.result
      return violated === undefined
    },
  )
  return { violated }
}

/** @param onResult false: no further job is begun */
export async function runJobs(jobs: readonly Job[], workers: number, onResult: (result: JobResult) => boolean): Promise<void> {
  const waiting = [...jobs]
  const lanes = Array.from({ length: Math.min(workers, jobs.length) }, () => runLane(waiting, onResult))
  await Promise.all(lanes)
}

async function runLane(waiting: Job[], onResult: (result: JobResult) => boolean): Promise<void> {
  while (waiting.length > 0) await runSome(waiting, onResult)
}

async function runSome(waiting: Job[], onResult: (result: JobResult) => boolean): Promise<void> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url))
  try {
    for (let done = 0; done < JOBS_OF_A_WORKER; done += 1) {
      const job = waiting.shift()
      if (job === undefined) return
      if (!onResult(await ask(worker, job))) waiting.length = 0
    }
  } finally {
    await worker.terminate()
  }
}

function ask(worker: Worker, job: Job): Promise<JobResult> {
  return new Promise((resolve, reject) => {
    const onMessage = (result: JobResult): void => {
      worker.off('error', onError)
      resolve(result)
    }
    const onError = (error: Error): void => {
      worker.off('message', onMessage)
      reject(error)
    }
    worker.once('message', onMessage)
    worker.once('error', onError)
    worker.postMessage(job)
  })
}
