-- Of a row that the transaction has locked.
SELECT labels FROM sandglass.hosts WHERE id = $1
