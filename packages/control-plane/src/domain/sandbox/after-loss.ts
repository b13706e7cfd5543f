/** What becomes of a sandbox whose host cannot keep it. Pure. */

export type RestartPolicy = 'never' | 'on_host_loss' | 'always'

/** `restart`: elsewhere, in a new generation; `end`: it fails, and says why. */
export function afterLoss(policy: RestartPolicy): 'restart' | 'end' {
  return policy === 'never' ? 'end' : 'restart'
}
