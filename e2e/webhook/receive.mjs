// Gives messages to the receiver that the guide shows, as they came and changed. The file
// that is named has a list of {secret, headers, body}.
import { readFileSync } from 'node:fs'
import { read } from './receiver.mjs'

const messages = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const refuses = (...message) => {
  try {
    read(...message)
  } catch {
    return
  }
  throw new Error('it took what was changed')
}
for (const { secret, headers, body } of messages) {
  if (read(secret, body, headers).type !== JSON.parse(body).type) throw new Error('it read something else')
  refuses(secret, body.replace('"type"', '"kind"'), headers)
  refuses(secret, body, { ...headers, 'webhook-id': 'another' })
  refuses(secret, body, { ...headers, 'webhook-timestamp': String(headers['webhook-timestamp'] - 3600) })
  refuses('whsec_' + Buffer.alloc(32).toString('base64'), body, headers)
}
console.log(messages.length)
