/** Server-sent events. */
import type { ServerResponse } from 'node:http'
import { writeChunk } from './client-stream.ts'

export const EVENT_STREAM_MEDIA_TYPE = 'text/event-stream'

/** JSON has no raw newlines, so one `data:` line is enough. */
export function eventText(type: string, data: unknown): string {
  return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`
}

export function beginEvents(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': EVENT_STREAM_MEDIA_TYPE, 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
  response.flushHeaders()
}

/** @throws ClientGone */
export async function writeEvent(response: ServerResponse, type: string, data: unknown): Promise<void> {
  await writeChunk(response, eventText(type, data))
}
