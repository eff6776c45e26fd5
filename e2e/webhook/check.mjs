// Checks messages as a receiver does, with the library of Standard Webhooks. The file that
// is named has a list of {secret, headers, body}.
import { readFileSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'

const messages = JSON.parse(readFileSync(process.argv[2], 'utf8'))
for (const { secret, headers, body } of messages) {
  new Webhook(secret).verify(body, headers)
  let refused = false
  try {
    new Webhook(secret).verify(body.replace('"type"', '"kind"'), headers)
  } catch {
    refused = true
  }
  if (!refused) throw new Error('a body that was changed pleased it too')
}
console.log(messages.length)
