"""What passages say whose log names them only: looked up by id where the application keeps them."""
