"""The review page: an application over HTTP on which people label the sentences that they are asked about."""
